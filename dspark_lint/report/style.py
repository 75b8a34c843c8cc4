"""The style sheet of the page: light and dark, wide and narrow; nothing is fetched."""

from __future__ import annotations


CSS = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1f2328;--muted:#57606a;--rule:#d0d7de;--card:#f6f8fa;
--error:#b3261e;--error-bg:#fdecea;--warning:#7a4f00;--warning-bg:#fff3d6;--info:#0b5cad;--info-bg:#e7f1fb;
--ok:#1a7f37;--ok-bg:#e3f5e8;--unchecked:#6639ba;--unchecked-bg:#f0eafb}
@media (prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--muted:#9da7b3;--rule:#30363d;--card:#161b22;
--error:#ff9b93;--error-bg:#3c1614;--warning:#f0c04a;--warning-bg:#33270a;--info:#84c0ff;--info-bg:#0d2440;
--ok:#5bd46b;--ok-bg:#0f2d17;--unchecked:#c9b0ff;--unchecked-bg:#271b42}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:1.5rem 1.25rem 4rem;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
code,pre,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace}
code{font-size:.875em;overflow-wrap:anywhere}
h1{font-size:1.25rem;margin:0;font-weight:600}
h2{font-size:1.25rem;margin:3rem 0 .25rem;padding-top:1.25rem;border-top:1px solid var(--rule);overflow-wrap:anywhere}
h3{font-size:1rem;margin:1.75rem 0 .5rem}
a{color:var(--info)}
.muted{color:var(--muted);font-size:.875rem}
.verdict{margin:.5rem 0 .25rem;font-size:1.75rem;line-height:1.25;font-weight:650}
.verdict.error{color:var(--error)}.verdict.warning{color:var(--warning)}
.verdict.ok{color:var(--ok)}.verdict.unchecked{color:var(--unchecked)}
.scroll{overflow-x:auto;margin:.5rem 0 1rem}
.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--info);outline-offset:2px}
table{border-collapse:separate;border-spacing:0;font-size:.875rem;border:solid var(--rule);border-width:1px 0 0 1px}
th,td{border:solid var(--rule);border-width:0 1px 1px 0;padding:.35rem .6rem;text-align:left;white-space:nowrap}
thead th{background:var(--card);font-weight:600}
tbody th{font-weight:400;position:sticky;left:0;background:var(--bg);max-width:24rem;white-space:normal}
td.error,.badge.error{background:var(--error-bg);color:var(--error)}
td.warning,.badge.warning{background:var(--warning-bg);color:var(--warning)}
td.info,.badge.info{background:var(--info-bg);color:var(--info)}
td.ok,.badge.ok{background:var(--ok-bg);color:var(--ok)}
td.unchecked,.badge.unchecked{background:var(--unchecked-bg);color:var(--unchecked)}
td.none{color:var(--muted)}
ul.facts{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;margin:0 0 .75rem;padding:0;
color:var(--muted);font-size:.875rem}
ul.notes{margin:.5rem 0;padding-left:1.25rem;color:var(--muted);font-size:.875rem}
.finding{border:1px solid var(--rule);border-left-width:4px;border-radius:6px;margin:.75rem 0;padding:.75rem 1rem}
.finding.error{border-left-color:var(--error)}.finding.warning{border-left-color:var(--warning)}
.finding.info{border-left-color:var(--info)}
summary{cursor:pointer}
.finding>summary{list-style-position:outside;margin-left:1rem}
.badge{display:inline-block;border-radius:4px;padding:0 .5rem;font-size:.8125rem;font-weight:600;margin-right:.25rem}
.rule{font-weight:650;margin-right:.4rem}
.where{margin-right:.4rem}
.title{color:var(--muted);font-size:.875rem}
.message{margin:.6rem 0;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.3rem 1rem;margin:.6rem 0;font-size:.9rem}
dt{color:var(--muted)}dd{margin:0;overflow-wrap:anywhere}
pre{margin:.6rem 0;padding:.5rem 0;background:var(--card);border-radius:6px;overflow-x:auto;font-size:.8125rem;
line-height:1.5}
pre .row{display:block;padding:0 .75rem;white-space:pre;width:max-content;min-width:100%}
pre .row i{display:inline-block;min-width:2.5em;margin-right:1em;color:var(--muted);font-style:normal;text-align:right;
user-select:none}
.finding.error pre .meant{background:var(--error-bg)}.finding.warning pre .meant{background:var(--warning-bg)}
.finding.info pre .meant{background:var(--info-bg)}
.tensor{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;padding:.5rem .75rem;background:var(--card);border-radius:6px;
font-size:.8125rem;overflow-wrap:anywhere}
.tensor code,pre code{font-size:1em}
ul.key{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;margin:.5rem 0;padding:0;font-size:.875rem}
ul.key svg{vertical-align:-3px;margin-right:.4rem}
svg text{fill:var(--fg);
font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace}
svg .head{font-weight:700}svg .name{text-anchor:end}svg .bad{font-weight:700}svg .shape{fill:var(--muted)}
svg .layer{fill:var(--muted);font-size:10px;text-anchor:middle}
svg .ok{fill:var(--ok);stroke:var(--ok)}svg .unexpected{fill:var(--warning);stroke:var(--warning)}
svg .wrong-shape{fill:var(--error);stroke:var(--error)}svg .unused{fill:none;stroke:var(--muted)}
svg .missing{fill:none;stroke:var(--error);stroke-dasharray:3 2}
svg .sign{stroke:var(--bg);stroke-width:2;fill:none}svg .gone{stroke:var(--error);stroke-width:2;fill:none}
svg .idle{stroke:var(--muted);stroke-width:2;fill:none}
@media (max-width:40rem){body{padding:1rem .75rem 3rem}.verdict{font-size:1.375rem}
dl{grid-template-columns:minmax(0,1fr);gap:0}dt{margin-top:.4rem}.finding{padding:.6rem .7rem}
tbody th{min-width:9rem;max-width:9rem}}
@media print{body{max-width:none}.finding{break-inside:avoid}.scroll{overflow:visible}}
"""

"""The style of a report: light and dark, wide and narrow, screen and paper; colours never carry a meaning alone."""

STYLE = """
:root{--bg:#fff;--panel:#f6f7f8;--ink:#1b1f23;--muted:#59636e;--rule:#d8dde2;--none:#e6e9ec;--link:#0b62a4;
--g0:#0b62a4;--g1:#9c4500;--g2:#1d6b3a;--g3:#7a3aa0;--g4:#8a1c4a;
--g0f:#cfe3f3;--g1f:#f8dcc3;--g2f:#d6eedd;--g3f:#e8d9f2;--g4f:#f5d5e0;
--up:#1d6b3a;--upf:#d6eedd;--down:#9c4500;--downf:#f8dcc3}
@media screen and (prefers-color-scheme:dark){:root{--bg:#14171a;--panel:#1c2024;--ink:#e9ecef;--muted:#a3adb7;
--rule:#343b42;--none:#2a3036;--link:#6cb8f5;--g0:#6cb8f5;--g1:#f2a65a;--g2:#7fd39b;--g3:#cda5ec;--g4:#f09ab8;
--g0f:#143a57;--g1f:#4f2f12;--g2f:#173d26;--g3f:#3b2450;--g4f:#4d1c30;--up:#7fd39b;--upf:#173d26;--down:#f2a65a;--downf:#4f2f12}}
*{box-sizing:border-box}html{-webkit-text-size-adjust:100%;color-scheme:light dark}
body{margin:0 auto;max-width:72rem;padding:1.1rem 1.25rem 4rem;background:var(--bg);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;font-variant-numeric:tabular-nums}
a{color:var(--link)}.skip{position:absolute;left:-999px}.skip:focus{left:1rem;top:.5rem;background:var(--bg)}
.kick{color:var(--muted);font-size:.85rem;margin:0;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem}
h1{font-size:clamp(1.35rem,3vw,1.9rem);line-height:1.2;margin:.45rem 0 .4rem;max-width:48ch;text-wrap:balance;overflow-wrap:anywhere}
h1.title{font-size:1.5rem}.lead{max-width:88ch;margin:.2rem 0 .5rem}.scope{color:var(--muted);margin:0 0 1rem;max-width:88ch;font-size:.9rem}
.first{display:grid;grid-template-columns:minmax(0,30rem) minmax(0,1fr);gap:1.2rem 2.2rem;align-items:start}
.ans{margin:0}.ans div+div{margin-top:.5rem}.ans dt{font-weight:650}.ans dd{margin:.06rem 0 0;font-size:.94rem;line-height:1.42;overflow-wrap:anywhere}
nav{border-block:1px solid var(--rule);margin:1.5rem 0 0;padding:.5rem 0;font-size:.9rem}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;list-style:none;margin:0;padding:0}
h2{font-size:1.3rem;line-height:1.25;margin:2.4rem 0 .3rem;overflow-wrap:anywhere}h3{font-size:1.02rem;margin:1.4rem 0 .3rem}
p{max-width:80ch;overflow-wrap:anywhere}.note{color:var(--muted);font-size:.88rem}
figure{margin:0}figure.mid{max-width:44rem}.paper{background:#fff;overflow-x:auto}figcaption{font-size:.92rem;line-height:1.35;margin-bottom:.3rem}
svg{display:block;width:100%;height:auto;font-family:inherit;overflow:visible}svg.narrow{display:none}
.grid{stroke:var(--rule)}.axis{stroke:var(--muted)}.tick{fill:var(--muted);font-size:11.5px}
.lab{font-size:12.5px;font-weight:650}.ann,.sl{font-size:12px;fill:var(--ink)}.sh{font-size:12.5px;font-weight:650;fill:var(--ink)}
.stx{font-size:11.5px;font-weight:600}.stx.none{fill:var(--muted);font-weight:400}
.line{fill:none;stroke-width:2.4;stroke-linejoin:round}.line.thin{stroke-width:1.6}.line.rest{stroke:var(--muted);stroke-width:1;opacity:.55}
.line.all{stroke:var(--ink);stroke-width:1.6;stroke-dasharray:1 3}
.g0.line,.g0.seed,.g0.ci,.g0.ref{stroke:var(--g0)}.g1.line,.g1.seed,.g1.ci,.g1.ref{stroke:var(--g1)}
.g2.line,.g2.seed,.g2.ci,.g2.ref{stroke:var(--g2)}.g3.line,.g3.seed,.g3.ci,.g3.ref{stroke:var(--g3)}
.g4.line,.g4.seed,.g4.ci,.g4.ref{stroke:var(--g4)}
.g1.line{stroke-dasharray:7 3}.g2.line{stroke-dasharray:2 3}.g3.line{stroke-dasharray:9 3 2 3}.g4.line{stroke-dasharray:4 2}
.lab.g0,.stx.g0,.dot.g0{fill:var(--g0)}.lab.g1,.stx.g1,.dot.g1{fill:var(--g1)}.lab.g2,.dot.g2{fill:var(--g2)}
.lab.g3,.dot.g3{fill:var(--g3)}.lab.g4,.dot.g4{fill:var(--g4)}.dot.rest{fill:var(--muted)}.ci.rest{stroke:var(--muted)}
.stx.up{fill:var(--up)}.stx.down{fill:var(--down)}
.seed{fill:none;stroke-width:1;opacity:.35}.band{opacity:.7}.band.g0,.st.g0{fill:var(--g0f)}.band.g1,.st.g1{fill:var(--g1f)}
.band.g2{fill:var(--g2f)}.band.g3{fill:var(--g3f)}.band.g4{fill:var(--g4f)}.st.up{fill:var(--upf)}.st.down{fill:var(--downf)}.st.none{fill:var(--none)}
.ref{stroke-dasharray:2 3;stroke-width:1.2}.ci{stroke-width:3;stroke-linecap:round}.mark{stroke:var(--ink);stroke-dasharray:1 3}
.bar{fill:var(--muted)}.bar.tot{fill:var(--ink)}.dim{fill:var(--panel)}.even{stroke:var(--muted);stroke-dasharray:3 3}
.spark{width:7.5rem;margin-bottom:.1rem}.spark .line{stroke-width:1.8}.dc{width:9rem}
table{border-collapse:collapse;width:100%;margin:.6rem 0;font-size:.93rem}
caption{text-align:left;color:var(--muted);font-size:.88rem;padding-bottom:.3rem;max-width:80ch}
th,td{padding:.42rem .7rem .42rem 0;border-bottom:1px solid var(--rule);text-align:left;vertical-align:top;line-height:1.3;overflow-wrap:break-word}
thead th{font-size:.82rem;font-weight:600;color:var(--muted);vertical-align:bottom}
tbody th{font-weight:600;min-width:8rem}th span,td span{display:block;color:var(--muted);font-size:.8rem;font-weight:400}
.chip{display:inline-block;font-weight:600;font-size:.84rem;padding:.06rem .45rem;border-radius:.25rem}
.chip.g0{background:var(--g0f);color:var(--g0)}.chip.g1{background:var(--g1f);color:var(--g1)}.chip.none{background:var(--none);font-weight:400}
.chip.up{background:var(--upf);color:var(--up)}.chip.down{background:var(--downf);color:var(--down)}
.mult{display:grid;grid-template-columns:repeat(3,minmax(0,1fr));gap:1.3rem 1.6rem;margin-top:.8rem}
.two{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:1.4rem 2.4rem;align-items:start;margin-top:.6rem}
.when{list-style:none;margin:.5rem 0;padding:0;border-left:2px solid var(--rule)}
.when li{padding:.15rem 0 .55rem 1rem;max-width:84ch;display:grid;grid-template-columns:8.5rem minmax(0,1fr);gap:0 1rem}
details{border-top:1px solid var(--rule);padding:.55rem 0}details:last-of-type{border-bottom:1px solid var(--rule)}
summary{cursor:pointer;font-weight:600}pre{background:var(--panel);padding:.8rem;font-size:.82rem;white-space:pre-wrap;overflow-wrap:anywhere}
.scroll{overflow-x:auto}.run{border-top:3px solid var(--rule);margin-top:3rem}footer{margin-top:3rem;color:var(--muted);font-size:.85rem}
@media(max-width:60rem){.first,.two{grid-template-columns:minmax(0,1fr)}.mult{grid-template-columns:repeat(2,minmax(0,1fr))}}
@media screen and (max-width:40rem){body{padding:.8rem .9rem 3rem}svg.wide{display:none}svg.narrow{display:block}
.mult{grid-template-columns:minmax(0,1fr)}.when li{grid-template-columns:minmax(0,1fr)}
table.stack thead{position:absolute;left:-9999px}table.stack caption{display:block}table.stack,table.stack tbody{display:block}
table.stack tr{display:grid;grid-template-columns:1fr 1fr 1.15fr;gap:.35rem .7rem;border-bottom:1px solid var(--rule);padding:.6rem 0}
table.stack th,table.stack td{display:block;border:0;padding:0;min-width:0}table.stack tbody th{grid-column:1/-1;font-size:1rem}
table.stack td::before{content:attr(data-l);display:block;color:var(--muted);font-size:.78rem}table.stack td:has(svg){grid-column:span 2}}
@media print{:root{color-scheme:light}body{max-width:none;font-size:10pt;padding:0}nav,.skip{display:none}
h2{break-after:avoid}figure,tr,.ans div{break-inside:avoid}thead{display:table-header-group}
.first{grid-template-columns:minmax(0,1fr) minmax(0,1fr)}.mult{grid-template-columns:repeat(3,minmax(0,1fr))}
details::details-content{content-visibility:visible;block-size:auto}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}@page{size:A4;margin:16mm 14mm}}
"""

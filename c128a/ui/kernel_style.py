"""The style of the parts of page 03 that are HTML.

Colours that text needs differ between a light and a dark page; marimo marks the dark one with the class "dark".
"""

from __future__ import annotations

from c128a.ui import theme

CLOSE_UP = 16  # lanes shown with their values
MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"

STYLE = f"""<style>
.c128a-box{{--word:#0b4f8a;--said:#5b6670;--number:#8a3b00;font-size:.9rem}}
.dark .c128a-box,.dark-theme .c128a-box{{--word:#7cc4ff;--said:#9aa5ad;--number:#ffb27a}}
.c128a-walk h3{{font-size:1.05rem;font-weight:600;margin:.2rem 0 .6rem}}
.c128a-walk{{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1.35fr);gap:0 2rem}}
.c128a-source{{{MONO};font-size:.78rem;line-height:1.5;padding:.5rem 0;border:1px solid {theme.FAINT};
border-radius:.4rem}}
.c128a-source div{{display:grid;grid-template-columns:2.4rem minmax(0,1fr);gap:.9rem;padding-right:.6rem;
border-left:4px solid transparent;min-height:1.17rem}}
.c128a-source .line{{text-align:right;color:var(--said);font-weight:400}}
.c128a-source code{{white-space:pre-wrap;font:inherit;background:none;padding:0;text-indent:-4ch;
margin-left:calc(var(--in)*1ch + 4ch)}}
.c128a-source .other{{opacity:.45}}
.c128a-source .marked{{background:{theme.HERE}2E;border-left-color:{theme.HERE};font-weight:600}}
.c128a-source .w{{color:var(--word);font-weight:600}}
.c128a-source .c{{color:var(--said);font-style:italic}}
.c128a-source .n{{color:var(--number)}}
.c128a-way{{border-collapse:collapse;width:100%}}
.c128a-way th,.c128a-way td{{padding:.22rem .7rem .22rem .5rem;text-align:left;vertical-align:top;font-weight:400}}
.c128a-way th{{color:var(--said);white-space:nowrap}}
.c128a-way td{{font-variant-numeric:tabular-nums}}
.c128a-way tr{{border-left:4px solid transparent}}
.c128a-way .marked{{background:{theme.HERE}2E;border-left-color:{theme.HERE}}}
.c128a-way .marked td,.c128a-way .marked th{{font-weight:600;color:inherit}}
.c128a-framed{{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:2px .6rem;font-size:.8rem}}
.c128a-framed .names{{text-align:right}}
.c128a-framed .picture{{position:relative;min-width:0}}
.c128a-framed .picture>div{{position:absolute;pointer-events:none;box-sizing:border-box}}
.c128a-framed .solid{{outline:3px solid {theme.HERE}}}
.c128a-framed .dashed{{border:3px dashed {theme.HERE}}}
.c128a-framed .ticks{{display:grid;color:var(--said);border-top:1px solid {theme.GREY}}}
.c128a-framed .ticks span::before{{content:"";display:inline-block;height:.45rem;border-left:1px solid {theme.GREY};
margin-right:.25rem}}
.c128a-lanes{{display:grid;grid-template-columns:repeat({CLOSE_UP},minmax(0,1fr));gap:3px}}
.c128a-lanes div{{padding:.3rem 0;text-align:center;font-size:.78rem;font-variant-numeric:tabular-nums;
border-radius:3px;overflow:hidden;white-space:nowrap}}
.c128a-lanes .live{{background:{theme.ID};color:{theme.ON_ID}}}
.c128a-lanes .pad{{background:{theme.PAD};color:{theme.ON_PAD}}}
.c128a-lanes .masked{{border:1px dashed {theme.GREY}}}
.c128a-lanes .chosen{{outline:3px solid {theme.HERE};outline-offset:0}}
.c128a-lanes .head{{color:var(--said);padding:0}}
.c128a-counts span{{margin-right:1.4rem;white-space:nowrap}}
.c128a-counts i{{display:inline-block;width:.9rem;margin-right:.45rem;vertical-align:baseline}}
.c128a-out{{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.82rem;width:100%}}
.c128a-out th{{text-align:left;font-weight:600;padding:.2rem .6rem .2rem 0;white-space:nowrap}}
.c128a-out td{{text-align:right;padding:.2rem .35rem}}
.c128a-out .chosen{{outline:3px solid {theme.HERE};outline-offset:-1px}}
.c128a-out .wrong{{background:{theme.WRONG};color:#FFFFFF;font-weight:700}}
.c128a-control{{border-radius:.3rem}}
.c128a-control:focus-within{{outline:3px solid {theme.HERE};outline-offset:5px}}
</style>"""

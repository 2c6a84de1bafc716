package draw

// style is the style sheet of all pictures. Colors follow the reader's preference. A page may use its
// variables, and may override them.
const style = `
:root { color-scheme: light dark; --bg: #ffffff; --panel: #f6f8fa; --ink: #1b2430; --soft: #566273; --rule: #d5dce4;
  --loop: #2563b0; --inline: #0b7468; --pool: #a04f06; --redis: #6d43b8; --engine: #5d6978; --crit: #c2143d; --on: #ffffff; --tint: #fdeef2; }
@media (prefers-color-scheme: dark) {
  :root { --bg: #11161d; --panel: #1a212b; --ink: #e4e9ef; --soft: #a2adbb; --rule: #364150;
    --loop: #7db2f7; --inline: #4fc9b8; --pool: #f0a35c; --redis: #bda0f5; --engine: #8693a6; --crit: #ff6b8b; --on: #10151c; --tint: #331a24; } }
.drawing { font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
.drawing.compact { font-size: 9.5px; }
.drawing text { fill: var(--ink); }
.drawing text.soft { fill: var(--soft); }
.drawing text.on { fill: var(--on); pointer-events: none; }
.drawing .loop { --c: var(--loop); } .drawing .inline { --c: var(--inline); } .drawing .pool, .drawing .io { --c: var(--pool); }
.drawing .request { --c: var(--loop); } .drawing .call { --c: var(--redis); } .drawing .engine { --c: var(--engine); } .drawing .nowhere { --c: var(--rule); }
.drawing .mark { fill: var(--c); }
.drawing .slice { fill: var(--c); stroke: var(--c); stroke-width: 1; vector-effect: non-scaling-stroke; }
.drawing .slice.crit { stroke: var(--crit); stroke-width: 2; }
.drawing .box { fill: var(--panel); stroke: var(--rule); }
.drawing .node.crit .box { fill: var(--tint); stroke: var(--crit); stroke-width: 2; }
.drawing .bold { font-weight: 700; }
.drawing .edge, .drawing .flow { fill: none; stroke: var(--soft); stroke-opacity: .55; stroke-width: 1; vector-effect: non-scaling-stroke; }
.drawing .edge.crit, .drawing .flow.crit { stroke: var(--crit); stroke-opacity: .9; stroke-width: 1.6; }
.drawing .edge.crit { stroke-width: 2.4; }
.drawing.many .flow { stroke-opacity: .25; } .drawing.many .flow.crit { stroke-opacity: .9; }
.drawing .slice.sleep { fill: var(--engine); fill-opacity: .18; stroke: var(--engine); stroke-dasharray: 4 3; } .drawing .slice.sleep.crit { stroke: var(--crit); }
.drawing .track { fill: var(--panel); }
.drawing .rule { stroke: var(--rule); stroke-width: 1; vector-effect: non-scaling-stroke; }
.drawing .gap { fill: var(--crit); fill-opacity: .09; }
.drawing .run { fill: var(--crit); }
.drawing .wait { fill: var(--crit); fill-opacity: .25; }
.drawing .background { fill: var(--bg); }
`

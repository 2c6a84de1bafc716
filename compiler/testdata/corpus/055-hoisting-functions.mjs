const early = hoisted(4);
function hoisted(n) { return n <= 1 ? 'base' : helper(n - 1) + n; }
function helper(n) { return '(' + hoisted(n) + ')'; }
const typeBefore = typeof laterVar;
var laterVar = 5;
export default function () {
  const seen = [typeof inner, typeof arrow];
  var arrow = () => 1;
  function inner() { return 1; }
  function inner2() { return 'first'; }
  const r = inner2();
  {
    seen.push(typeof blocked, blocked());
    function blocked() { return 'in block'; }
  }
  seen.push(typeof blocked);
  if (true) { function cond() {} seen.push(typeof cond); }
  switch (1) { case 0: function inCase() { return 'case'; } case 1: seen.push(inCase()); }
  var dup = 1; var dup; 
  return { early, typeBefore, laterVar, seen, r, dup, forVar: (() => { for (var z = 0; z < 2; z++); return z; })(), names: [hoisted.name, arrow.name, hoisted.length] };
}

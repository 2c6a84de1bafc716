const doc = ' {"a":[1,-0,1e3,0.5,"\\u0041\\n\\/"],"b":{"c":null,"d":true},"a b":{},"__proto__":{"x":1},"a":"dup","2":2,"1":1} ';
const parsed = JSON.parse(doc);
const err = (s) => { try { return JSON.parse(s); } catch (e) { return e.name; } };
const bad = ['', '{', '[1,]', '{"a":1,}', "{'a':1}", '01', '+1', '.5', '1.', 'NaN', 'undefined', '"\t"', '"\\x41"', '[1 2]', '{"a"}', 'nul', '1 2', '"\\u12"', '-', '\u00a01', '// c\n1'].map(err);
export default function () {
  const order = [];
  const revived = JSON.parse('{"x":{"y":[1,2,"3"]},"z":4}', function (k, v) { order.push(k); return typeof v === 'number' ? v + 1 : k === '2' ? undefined : v; });
  const hole = revived.x.y;
  return { keys: Object.keys(parsed), a: parsed.a, own: [Object.hasOwn(parsed, '__proto__'), Object.getPrototypeOf(parsed) === Object.prototype, parsed.x], bad, order, len: [hole.length, 2 in hole], z: revived.z, dropped: JSON.parse('{"keep":1,"drop":2}', (k, v) => (k === 'drop' ? undefined : v)), roots: [JSON.parse('1'), JSON.parse('"s"'), JSON.parse('null'), JSON.parse(' \t\n\r[ ] '), JSON.parse('-0'), JSON.parse('1E+2'), JSON.parse(null), JSON.parse(['1'])], precision: [JSON.parse('9007199254740993'), JSON.parse('1e400'), JSON.parse('0.1e-6'), JSON.parse('123456789012345678901234567890')], esc: JSON.parse('"\\ud83d\\ude00\\"\\\\\\b"').length, sep: JSON.parse('"\u2028"').length, round: JSON.stringify(JSON.parse('{"b":[{"a":{}}],"1":[[]]}')), fresh: JSON.parse('[]') !== JSON.parse('[]') };
}

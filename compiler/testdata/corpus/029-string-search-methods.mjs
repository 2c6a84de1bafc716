const text = 'the cat sat on the mat';
const found = {
  indexOf: [text.indexOf('at'), text.indexOf('at', 6), text.indexOf('zzz'), text.indexOf(''), text.indexOf('', 99), text.indexOf('t', -5)],
  lastIndexOf: [text.lastIndexOf('at'), text.lastIndexOf('at', 8), text.lastIndexOf('the', 0), text.lastIndexOf(''), text.lastIndexOf('x')],
};
export default function () {
  const positions = [];
  for (let i = text.indexOf('t'); i !== -1; i = text.indexOf('t', i + 1)) positions.push(i);
  let refused;
  try { text.startsWith(/the/); } catch (e) { refused = e.name; }
  return {
    found, positions, refused,
    includes: [text.includes('cat'), text.includes('cat', 5), text.includes(''), 'undefined'.includes()],
    starts: [text.startsWith('the'), text.startsWith('cat', 4), text.startsWith('', 100)],
    ends: [text.endsWith('mat'), text.endsWith('cat', 7), text.endsWith('')],
    search: [text.search('sat'), text.search(/o/), text.search(/q/)],
  };
}

const multi = 'one\ntwo\r\nthree';
const starts = multi.match(/^\w+/gm);
const ends = multi.match(/\w+$/gm);
export default function () {
  const d = /(?<a>x)(y)?/d.exec('..x');
  const re = new RegExp('a/b\n', 'gi');
  return {
    starts, ends,
    dotAll: [/a.b/.test('a\nb'), /a.b/s.test('a\nb'), /a[^]b/.test('a\nb'), /a.b/.test('a\u2028b')],
    indices: [[...d.indices[0]], d.indices[2], [...d.indices.groups.a]],
    source: [re.source, String(re), new RegExp('').source, new RegExp(/x/g, 'i').flags, RegExp(/q/y).flags, String(/[/]\//)],
    getters: ['global', 'ignoreCase', 'multiline', 'dotAll', 'unicode', 'sticky', 'hasIndices'].map((k) => re[k]),
    errs: ['(', '[b-a]', '*', 'a{2,1}', '(?<n>a)(?<n>b)', '\\'].map((p) => { try { new RegExp(p); return 'ok'; } catch (e) { return e.name; } }),
    badFlags: ['gg', 'q'].map((f) => { try { return new RegExp('a', f); } catch (e) { return e.name; } }),
    sameIdentity: RegExp(re) === re,
  };
}

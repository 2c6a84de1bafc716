const words = ['straße', 'İ', 'ı', 'ΑΣ', 'ΑΣΑ', 'ǆ', 'ﬁn', 'ÿ', '\u{10400}', 'mIxEd 123'];
const upper = words.map((w) => w.toUpperCase());
const lower = words.map((w) => w.toLowerCase());
export default function () {
  const title = (s) => s.replace(/\b\w/g, (c) => c.toUpperCase());
  const camel = (s) => s.replace(/[-_](\w)/g, (_, c) => c.toUpperCase());
  const snake = (s) => s.replace(/[A-Z]/g, (c) => '_' + c.toLowerCase());
  return {
    upper, lower,
    lens: words.map((w, i) => [w.length, upper[i].length, lower[i].length]),
    helpers: [title('the quick fox'), camel('font-size_large'), snake('someLongName')],
    caseless: ['ẞ'.toLowerCase() === 'ß', 'ß'.toUpperCase() === 'SS', 'K'.toLowerCase() === 'k', /\u212a/i.test('k'), /\u212a/iu.test('k')],
  };
}

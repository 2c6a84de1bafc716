const samples = ['a b&c=d/e?f#g', 'é€\u{1F600}', "-_.!~*'()", '%41', ';,:@+$'];
const enc = samples.map((s) => [encodeURIComponent(s), encodeURI(s)]);
const round = samples.every((s) => decodeURIComponent(encodeURIComponent(s)) === s);
const attempt = (f) => { try { return f(); } catch (e) { return e.name; } };
const parseQuery = (q) => Object.fromEntries(q.split('&').map((p) => p.split('=').map((x) => decodeURIComponent(x.replaceAll('+', ' ')))));
export default function () {
  return {
    enc, round,
    decodeURI: decodeURI('%41%2F%3F%20%E2%82%AC'),
    errors: [attempt(() => decodeURIComponent('%')), attempt(() => decodeURIComponent('%E2%82')), attempt(() => encodeURIComponent('\ud800')), attempt(() => decodeURI('%C0%80'))],
    query: parseQuery('name=J%C3%BCrgen&q=a+b%2Bc&empty='),
    type: [encodeURIComponent(undefined), encodeURIComponent(null), encodeURIComponent([1, 2])],
  };
}

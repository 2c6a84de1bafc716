const forms = ['NFC', 'NFD', 'NFKC', 'NFKD'];
const samples = ['\u00e9', 'e\u0301', '\u1e9b\u0323', '\ufb01', '\u212b', '\uac00', '\u00bd', 'plain'];
const codes = (s) => [...s].map((c) => c.codePointAt(0).toString(16)).join(' ');
const table = samples.map((s) => forms.map((f) => codes(s.normalize(f))));
export default function () {
  const strip = (s) => s.normalize('NFD').replace(/[\u0300-\u036f]/g, '');
  let bad;
  try { 'x'.normalize('nfc'); } catch (e) { bad = e.name; }
  return {
    table, bad,
    equalAfter: '\u00e9' !== 'e\u0301' && '\u00e9'.normalize() === 'e\u0301'.normalize(undefined),
    stripped: ['Crème brûlée', 'Ångström', 'naïve façade'].map(strip),
    lengths: ['\u1e9b\u0323'.normalize('NFKD').length, '\ufdfa'.normalize('NFKC').length],
  };
}

class Trie {
  root = Object.create(null);
  static END = Symbol('end');
  add(w, n = 1) { let t = this.root; for (const ch of w) t = t[ch] ??= Object.create(null); t[Trie.END] = (t[Trie.END] ?? 0) + n; return this; }
  find(p) { let t = this.root; for (const ch of p) if (!(t = t[ch])) return null; return t; }
  has(w) { return !!this.find(w)?.[Trie.END]; }
  *words(p = '', t = this.find(p)) { if (!t) return; if (t[Trie.END]) yield p; for (const ch of Object.keys(t).sort()) yield* this.words(p + ch, t[ch]); }
  longestPrefix(s) { let t = this.root, i = 0, best = ''; for (; i < s.length && (t = t[s[i]]); i++) if (t[Trie.END]) best = s.slice(0, i + 1); return best; }
}
const trie = new Trie();
for (const w of 'car card care cat dog do constructor __proto__'.split(' ')) trie.add(w);
trie.add('car', 4);
export default function () {
  return { all: [...trie.words()], pre: [...trie.words('car')], has: ['ca', 'cat', 'toString', 'constructor', ''].map((w) => trie.has(w)), count: trie.find('car')[Trie.END], longest: [trie.longestPrefix('cardigan'), trie.longestPrefix('doge'), trie.longestPrefix('x')], none: [...trie.words('zz')], emoji: [...new Trie().add('\u{1F600}a').words()].map((w) => w.length) };
}

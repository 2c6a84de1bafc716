class Vault {
  #code = 1234;
  static check(v) { return v.#code === 1234; }
}
const results = [Vault.check(new Vault())];
const lookalike = { code: 1234, __proto__: Vault.prototype };
export default function () {
  results.push(lookalike instanceof Vault);
  results.push(Vault.check(lookalike));
  return results;
}

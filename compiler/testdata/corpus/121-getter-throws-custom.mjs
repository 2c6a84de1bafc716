class Stale extends Error { constructor(key) { super(`stale key ${key}`); this.name = 'Stale'; this.key = key; } }
const cache = { hits: 0, get fresh() { this.hits++; if (this.hits > 3) throw new Stale('fresh'); return this.hits; } };
const early = [cache.fresh, { ...cache }.fresh];
export default function () {
  const { fresh, hits } = cache;
  return [early, fresh, hits, JSON.stringify(cache)];
}

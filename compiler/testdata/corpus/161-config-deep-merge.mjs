const isObj = (v) => v !== null && typeof v === 'object' && !Array.isArray(v);
const merge = (a, b) => Object.keys(b).reduce((o, k) => ({ ...o, [k]: isObj(o[k]) && isObj(b[k]) ? merge(o[k], b[k]) : Array.isArray(o[k]) && Array.isArray(b[k]) ? [...o[k], ...b[k]] : b[k] === undefined ? o[k] : b[k] }), a);
const defaults = { server: { port: 80, hosts: ['a'], tls: { on: false } }, level: 'info', retry: null };
const env = { SERVER__PORT: '8080', SERVER__TLS__ON: 'true', LEVEL: '', RETRY: 'null', RATIO: '0.25' };
const cast = (s) => (/^(true|false|null|-?\d+(\.\d+)?)$/.test(s) ? JSON.parse(s) : s);
const fromEnv = Object.entries(env).reduce((o, [k, v]) => { const path = k.toLowerCase().split('__'), last = path.pop(); let t = o; for (const p of path) t = t[p] ??= {}; t[last] = cast(v); return o; }, {});
const config = [defaults, { server: { hosts: ['b'], extra: undefined }, level: undefined }, fromEnv].reduce(merge);
export default function () {
  const get = (o, path, d) => path.split('.').reduce((v, k) => v?.[k], o) ?? d;
  const flatten = (o, p = '') => Object.entries(o).flatMap(([k, v]) => (isObj(v) ? flatten(v, `${p}${k}.`) : [[p + k, v]]));
  const diff = (a, b) => Object.fromEntries(flatten(b).filter(([k, v]) => JSON.stringify(get(a, k)) !== JSON.stringify(v)));
  const interp = (s, o) => s.replace(/\$\{([\w.]+)(?::-([^}]*))?\}/g, (_, k, d = '?') => get(o, k, d));
  const ini = 'top=1\n; note\n[sec]\nname = two words \nlist=1,2,3\n\n[other]\nx=' ; let sec; const parsed = {}; for (const line of ini.split(/\n/)) { let m; if ((m = /^\[(.+)\]$/.exec(line))) sec = parsed[m[1]] = {}; else if ((m = /^\s*([^;=\s]+)\s*=\s*(.*?)\s*$/.exec(line))) (sec ?? parsed)[m[1]] = m[2].includes(',') ? m[2].split(',').map(Number) : m[2]; }
  return { config, fromEnv, defaultsIntact: defaults.server.hosts.length, get: [get(config, 'server.tls.on'), get(config, 'a.b', 'none')], flat: flatten(config), diff: diff(defaults, config), interp: interp('${server.port}/${nope:-dflt}/${zip}/${level}', config), parsed };
}

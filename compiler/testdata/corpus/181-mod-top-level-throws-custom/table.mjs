import { ok } from './ok.mjs';
import { ConfigError } from './errors.mjs';
export const table = ok.map((x) => {
  if (x > 0.5) throw new ConfigError('x', x);
  return x * 2;
});

import { getOptions } from './setup.mjs';
export const build = () => ({ ...defaults, ...getOptions() });
export const defaults = { width: 2, ready: build().width };

import { build } from './build.mjs';
const OPTIONS = { depth: 3 };
export const getOptions = () => OPTIONS;
export const setup = build();

import { register } from '../registry.mjs';
export default register('upper', (s) => s.toUpperCase());

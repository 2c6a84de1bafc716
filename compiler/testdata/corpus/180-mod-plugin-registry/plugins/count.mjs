import { register } from '../registry.mjs';
import { tally } from '../util/tally.mjs';
register('count', tally);

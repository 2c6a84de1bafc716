import * as all from './index.mjs';
import { shapes, renamed, Main, 'string name' as strName } from './index.mjs';
const keys = Object.keys(all);
const nested = Object.keys(shapes);
export default function () {
  return { keys, nested, renamed: renamed(4), main: Main(), strName, clash: ['clash' in all, all.own, all.local], deep: shapes.circle(2), noDefault: 'default' in all, sameFn: shapes.circle === all.circle, explicit: all.winner, viaString: all['string name'] };
}

import anonFn from './anon-fn.mjs';
import AnonClass from './anon-class.mjs';
import arrow, { getValue } from './arrow.mjs';
import snap, { bump as bumpSnap } from './snapshot.mjs';
import live, { bump as bumpLive } from './live.mjs';
import hoisted, { early } from './hoisted.mjs';
const first = [snap, live];
bumpSnap(); bumpLive();
const second = [snap, live];
export default function main() {
  return { names: [anonFn.name, AnonClass.name, arrow.name, hoisted.name, main.name], calls: [anonFn(2), new AnonClass().v, arrow(3), hoisted()], first, second, early, value: getValue(), again: AnonClass.self() };
}

import { store, id } from './store.mjs';
import { store as store2, id as id2 } from './lib/../store.mjs';
import { touch, storeSeen } from './lib/user.mjs';
import { touch as touch2 } from '././lib/user.mjs';
store.set('main', id);
const ids = [touch('a'), touch2('b'), id()];
export default function () {
  return { same: [store === store2, id === id2, touch === touch2, storeSeen === store], ids, keys: [...store.keys()], next: id2(), log: store.get('log') };
}

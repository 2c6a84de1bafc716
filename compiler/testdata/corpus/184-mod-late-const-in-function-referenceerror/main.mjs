import { setup } from './setup.mjs';
export default function () {
  return setup;
}

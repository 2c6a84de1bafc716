import { parentName, describeChild, family } from './parent.mjs';
import { childName, describeParent } from './child.mjs';
family.push('main');
const top = [describeChild(), describeParent()];
export default function () {
  return { top, parentName, childName, family: family.join(), three: describeParent(2) };
}

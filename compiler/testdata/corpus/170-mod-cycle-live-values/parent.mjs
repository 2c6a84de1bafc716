import { childName, describeParent, early } from './child.mjs';
export const parentName = 'P' + childName;
export const describeChild = () => `${parentName} has ${childName} (${early()})`;
export const family = ['parent sees ' + describeParent.length];

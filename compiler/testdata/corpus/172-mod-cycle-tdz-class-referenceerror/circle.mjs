import { Shape } from './shape.mjs';
export class Circle extends Shape {
  constructor(r) { super(); this.r = r; }
  area() { return 3 * this.r ** 2; }
}

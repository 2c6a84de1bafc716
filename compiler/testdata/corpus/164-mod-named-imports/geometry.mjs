export const PI_ISH = 22 / 7;
export const square = (x) => x * x;
const cubeImpl = function (x) { return x * square(x); };
export { cubeImpl as cube };
export default function area(r) { return Math.round(PI_ISH * square(r) * 1000) / 1000; }
export class Point {
  constructor(x, y) { this.x = x; this.y = y; }
  plus({ x, y }) { return new Point(this.x + x, this.y + y); }
  toString() { return `(${this.x}, ${this.y})`; }
}

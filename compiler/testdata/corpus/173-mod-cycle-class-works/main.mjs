import { Circle } from './circle.mjs';
import { Shape } from './shape.mjs';
const made = [Shape.make('circle', 2), Shape.make('none'), new Circle(3)];
export default function () {
  return { areas: made.map((s) => s.area()), names: made.map((s) => s.constructor.name), inst: made.map((s) => [s instanceof Shape, s instanceof Circle]), count: Shape.count, kinds: [...Shape.kinds.keys()] };
}

import area, { PI_ISH as PI, square, cube as third, default as again, Point } from './geometry.mjs';
import { square as sq2 } from './geometry.mjs';
const unit = new Point(1, 1);
const areas = [1, 2, 0.5].map(area);
const total = areas.reduce((a, b) => a + b);
export default function () {
  return { PI, areas, total, same: [area === again, square === sq2], powers: [square(3), third(3)], names: [area.name, third.name, Point.name], sum: { ...unit.plus(new Point(2, 3)) }, str: `${unit}`, shadow: (({ PI }) => PI)({ PI: 'shadowed' }) };
}

const area = (w, h = w) => w * h;
const okays = [area(3), area(2, 5), area(2, undefined)];
export default function () {
  const twisted = (a = b, b = 2) => [a, b];
  const fine = twisted(1);
  return [okays, fine, twisted(undefined, 3)];
}

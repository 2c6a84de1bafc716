export default function () {
const fs = []; for (let i = 0; i < 3; i++) fs.push(() => i); for (var j = 0; j < 3; j++) fs.push(() => j); return fs.map((f) => f())
}

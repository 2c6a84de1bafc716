export default function () {
return [typeof nobody, typeof null, typeof (() => 1), typeof class {}, typeof Symbol(), typeof 1n, typeof typeof 1, typeof [].x, typeof (0, "a")]
}

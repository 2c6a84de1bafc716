export default function () {
return new (class { constructor() { return this.missing.call() } })()
}

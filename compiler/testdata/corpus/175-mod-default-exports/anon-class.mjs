export default class { v = 'anon'; static self() { return this.name; } }

// Package kernels, which follows the engine's needs, measures the tasks that compute (vm,
// filter, sort, take, concat) by the number of rows. It runs them as the engine does: the
// task's body on a batch of columns, with the checks of its output.
package kernels

// Package admin, which follows the engine's needs, has the pages for operators: is the process alive and ready, its
// metrics, its profiles, and the trace of one request. They belong on a port that strangers cannot reach, because
// whoever asks here may run any plan.
package admin

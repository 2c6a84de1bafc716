// Package clusterclient, which is not covered by the compatibility promise, has the client of a Redis Cluster
// for the loop. It uses one resp.Client for each node, and follows the rules of package resp/cluster.
//
//	resp.Call ──Do──▶ operation ──by slot──▶ leg ──▶ resp.Client of node 1 ──▶ replies ┐
//	                      ▲    └───────────▶ leg ──▶ resp.Client of node 2 ──▶ replies ┤
//	                      │                                                            ▼
//	                      └── Done: all replies in the order of the commands ◀── deliver, or send again (MOVED, ASK, TRYAGAIN)
//
// The clients of the nodes gather the commands of an iteration, and share equal reads, as for a single server, because equal
// commands go to the same node. So each connection to a node has one write per iteration.
//
// If a node does not answer, each of its commands gets an error as its reply; other commands are not affected. A command that may have reached a node is never sent again, unless the
// node has said that it did not run the command.
package clusterclient

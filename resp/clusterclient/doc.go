// Package clusterclient, which follows the engine's needs, has the client of a Redis Cluster for the loop. It stands before one
// resp.Client for each node, and follows the rules of package resp/cluster.
//
//	resp.Call ──Do──▶ operation ──by slot──▶ leg ──▶ resp.Client of node 1 ──▶ replies ┐
//	                      ▲    └───────────▶ leg ──▶ resp.Client of node 2 ──▶ replies ┤
//	                      │                                                            ▼
//	                      └── Done: all replies in the order of the commands ◀── deliver, or send again (MOVED, ASK, TRYAGAIN)
//
// The clients of the nodes gather what leaves in an iteration, and share equal reads, as for a server that stands alone: equal
// commands have the same node. So one write goes to each node, connection and iteration.
//
// A node that does not answer fails the commands that it was asked, by an error in the place of each reply, and no others. A command that may have reached a node is never sent again, except where the
// node has said that it did not run it.
package clusterclient

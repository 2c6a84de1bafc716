// Package cluster, which is not covered by the compatibility promise, holds the rules by which a client of a
// Redis Cluster finds the node of a key, and adapts to slots that move and nodes that die. It has neither
// sockets nor timers: its owner tells it what happened, and when, and asks it what to do next. So a client on
// the loop, one that blocks, and a simulation follow the same rules.
//
//	command ──Route──▶ slot ──State.Owner──▶ node ──reply──▶ State.Judge ──▶ deliver, or send again: where, and when
//	                              ▲                             │
//	      CLUSTER SLOTS ──ParseSlots──▶ State.Answered          │ MOVED patches its slot at once
//	                              ▲                             ▼
//	                         State.Ask ◀── due ◀── MOVED, failed connects, timeouts, READONLY, CLUSTERDOWN, every 60 s
//
// A State asks for the map of one node after the other, at most three of them in one refresh. It keeps the first map that is
// complete, or else the one that lacks the fewest slots. Refreshes are at least 100 ms apart, and one is under way at a time.
//
// docs/glossary.md explains the words that this package shares with others.
package cluster

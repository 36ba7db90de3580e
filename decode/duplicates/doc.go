// Package duplicates tells capture points apart that a capture shows as one.
//
// mergecap merges interfaces that have the same description. A file that it makes of the client's and the server's capture then has one
// interface, and nothing distinguishes the two. A switch may mirror a packet where it comes in and where it goes out, and a capture of all
// interfaces of a host shows a packet at a port, at the bond above, and at a VLAN of the bond.
// In each case a packet comes twice or more often. The time between its copies is the difference of two clocks, or the time in the
// switch. A decoder would take the copies for retransmissions, and copies from a connection that has ended for a new connection.
//
// Open looks at the beginning of each file. If nearly all packets have the same number of copies, in both directions between two hosts, and
// nearly the same time between the copies, the copies get a Tap of their own.
package duplicates

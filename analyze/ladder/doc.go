// Package ladder shows one transaction packet by packet: who sent what to whom, when, and for which chunk. It
// needs transactions that list their packets; see transaction.Options.Packets.
package ladder

package main

import "strings"

const helpText = `rpcrdma-top: what is happening on an RDMA network, and how fast.

Views
  1-9, Tab       overview, transactions, connections, files, clients, latency,
                 fabric, sessions, why
  arrows, j k    move; PgUp, PgDn, Home, End; the wheel of the mouse
  Enter          open the transaction; elsewhere: the transactions of the row
  Esc            back; then: filter off
  < >  r         sort by the previous or next column; reverse. Or click a title
  t              overview, fabric, sessions: the latest interval, or totals
  Space          freeze the screen; decoding goes on
  + -            longer or shorter interval
  /              filter, as with rpcrdma-dump -Y: op == READ && latency > 1ms
                 All figures but those of the wire then count what passes it,
                 from now on; at the end of a file from its beginning
  f  F           search the list, an open transaction or this help; the next one
  y              copy the XID of the transaction to the clipboard (OSC 52);
                 elsewhere the filter for the row
  w              write the packets of the transaction or row to a pcapng file:
                 files are read again; of a capture what --keep holds
  W              write the screen to a text file
  c              columns: hide, move, sort; keep them in the configuration file
  a              all transactions that have ended, page by page (at the end)
  @  { }         replay: go to a time; ten intervals back or forth
  p  n  [ ]      replay: pause; go to the next packet; slower, faster
  q, Ctrl-C      quit

Overview
  why            why calls are slow, in the latest interval and in all; the view
                 Why has the evidence, and what to run next
  OPS/S B/S      of the latest interval; bytes of RPC messages, data included
  P50 P99 MAX    latency: first packet of the call to last packet of the reply
  RATE, P99      over time, one column for each interval, the latest right
  %TIME PHASES   where the time went: c call  p pull  s server  w push  r reply
                 - path: packets on their way between the capture point and the
                 server, as acknowledgements show it; not a part of the others
  in flight      calls without a reply; mean: latencies / length of the interval
  credits        calls in flight of the credits granted, where they are scarcest
  wire           packets seen again; lost by the system (drops) or missing in
                 the capture (gaps); NAK, RNR; wrong checksums (CRC);
                 congestion: CNP, ECN
  malformed      headers that cannot be decoded, and contradictions in TCP
                 streams; only if there are any. Since the beginning
  given up       what is no longer followed for lack of memory; only if there is

Transactions
  CHUNKS         R read, W write, P reply chunk, Z call in a chunk; W1M:512K has
                 moved 512 KiB of the 1 MiB that was offered
  MOVED  IO      part of all chunks; RDMA Reads (r), Writes (w) in flight
  STATE          wait: the server has not begun to read the call's data
                 pull: it reads  server: it works  push: it writes results
                 ack: it has replied; then the status with which it ended
  !  stuck       no packet of it was seen for longer than --stuck
  Ended ones stay for a while: failed ones, the slowest, the latest.

Connections
  CREDITS        in use / granted / asked for
  ERRORS         again: packets seen again; nak, rnr; crc: wrong; gap: missing
                 in the capture; ecn, cnp: congestion; failed: the call's
                 status
  MODEL          how calls and replies were transferred

Fabric
  All connections of RDMA, with or without RPC; those with alarms (!) first.
  STALLED        time that one side could not go on: recovery from losses, RNR
                 (not ready), paced after a CNP, or TCP's window reduced by a
                 loss (congested), all Reads in use (depth)
  LOSSES AGAIN   recoveries that have ended; packets sent again
  ALARMS         thresholds that were passed, see --alarm; lost for: not yet
                 recovered from a loss. The first line of the screen names all
                 alarms of the interval, those of latency (p99), failed calls
                 (errors) and stuck ones included

Sessions
  NFSv4.1 sessions; clients of versions without, by address (nconnect).
  SLOTS          in use now, of the limit: grant or target, the smaller one
  MEAN FULL%     slots in use on average; share of the time with all in use
  AFTER          calls that came after that: they may have waited for a slot
  UNEVEN         calls of the busiest connection, as a multiple of its share

Latency
  A column for each interval, a line for each band of latencies; the darker,
  the more transactions.
`

func (u *ui) helpText() []string { return strings.Split(strings.TrimRight(helpText, "\n"), "\n") }

func (u *ui) helpLines() []string {
	text := u.helpText()
	room := max(u.height-1, 1)
	u.helpTop = max(min(u.helpTop, len(text)-room), 0)
	var out []string
	for _, l := range text[u.helpTop:min(u.helpTop+room, len(text))] {
		t := normal
		if l != "" && l[0] != ' ' {
			t = bold
		}
		out = append(out, u.st.line(u.width, normal, span{u.g.plain(l), t}))
	}
	for len(out) < room {
		out = append(out, u.st.line(u.width, normal))
	}
	if u.height > 1 {
		foot := " Esc back"
		if len(text) > room {
			foot += "  arrows scroll  f search"
		}
		switch {
		case u.typing:
			out = append(out, u.foot())
		case u.message != "":
			out = append(out, u.st.line(u.width, normal, span{" " + u.g.name(u.message, max(u.width-2, 3)), accent}))
		default:
			out = append(out, u.st.line(u.width, normal, span{foot, dim}))
		}
	}
	return out
}

package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/internal/units"
)

// of says how much of its clock a cause has.
func of(f *finding, rep *Report) string {
	if f.clock == Wall {
		return units.DurationText(f.time) + " of " + units.DurationText(rep.Wall) + " wall time"
	}
	return units.DurationText(f.time) + " of " + units.DurationText(rep.Calls)
}

// text says a cause in a sentence or two: what, how much, how certain, and why.
func (r *Recorder) text(f *finding, rep *Report) string {
	head := func(what string) string { return fmt.Sprintf("%s, %s (%s): ", what, of(f, rep), f.certainty) }
	switch f.code {
	case Outage:
		if f.clock == Wall {
			return head("Outage") + fmt.Sprintf("the server refused %s before it took %s.", units.Plural(f.events, "connection"), f.place())
		}
		if f.what == cutOff {
			return fmt.Sprintf("Outage, %s (%s): what was sent again on %s did not get through; %s waited %s in all.", units.DurationText(f.typical), f.certainty, f.place(), units.Plural(f.calls, "call"), units.DurationText(f.time))
		}
		if f.what == silent {
			return fmt.Sprintf("Outage, %s (%s): %s answered nothing; %s waited %s in all, and were answered together.", units.DurationText(f.typical), f.certainty, f.place(), units.Plural(f.calls, "call"), units.DurationText(f.time))
		}
		return fmt.Sprintf("Outage, %s (%s): %s waited %s in all and had to be sent again on %s.", units.DurationText(f.typical), f.certainty, units.Plural(f.calls, "call"), units.DurationText(f.time), f.place())
	case LossRecovery:
		if f.what == tail {
			return fmt.Sprintf("Tail loss, server to client, %s (%s): %s came one ACK timeout, %s, late on %s, and no packet behind them showed the loss.",
				units.DurationText(f.time), f.certainty, units.Plural(f.calls, "reply"), units.DurationText(f.typical), f.place())
		}
		s := head("Losses") + fmt.Sprintf("%s waited on %s for packets that were lost, or came out of order, and were sent again.", units.Plural(f.calls, "call"), f.place())
		if f.who != "" {
			s += fmt.Sprintf(" That was %s, %s", f.who, f.what)
			if f.what == before {
				s += ", so there may be more than it shows"
			}
			s += "."
		}
		switch {
		case f.first > 0:
			s += fmt.Sprintf(" Congestion was notified %s before the first loss.", units.DurationText(f.first))
		case f.first < 0:
			s += fmt.Sprintf(" The first loss came %s before congestion was notified: sending again may have made it worse.", units.DurationText(-f.first))
		}
		return s
	case Congestion:
		return head("Congestion") + fmt.Sprintf("%d notifications (CNP) slowed the %s's adapter on %s; everything behind the paced data waits.", f.events, f.what, f.place())
	case PathStall:
		return head("Path stalls") + fmt.Sprintf("%d times the path of %s stood still, up to %s; nothing was lost, so something upstream paused it.", f.events, f.place(), units.DurationText(f.typical))
	case Pause:
		return head("Pause frames") + fmt.Sprintf("%s stopped the packets of %s %s, for up to %s.", f.what, f.place(), units.Times(f.events), units.DurationText(f.typical))
	case LinkFull:
		return head("Link full") + fmt.Sprintf("packets of the %s follow without a gap on %s, at %.1f Gb/s; calls wait for room.", f.what, f.place(), float64(f.typical)/1e9)
	case ReceiverNotReady:
		if f.what == window {
			return head("Receiver not ready") + fmt.Sprintf("the %s did not read, and closed the window of TCP on %s; %s waited.", f.side, f.place(), units.Plural(f.calls, "call"))
		}
		return head("Receiver not ready") + fmt.Sprintf("the %s had no buffer for %s on %s.", f.side, units.Plural(f.calls, "call"), f.place())
	case ReadDepth:
		if f.what == unused {
			return head("Depth of Reads") + fmt.Sprintf("the server has one RDMA Read at a time under way on %s, though more were agreed; others waited.", f.place())
		}
		return head("Depth of Reads") + fmt.Sprintf("as many RDMA Reads were under way on %s as the %s allows; others waited.", f.place(), f.side)
	case Credits:
		switch f.what {
		case "zero":
			return head("Credits") + fmt.Sprintf("the server grants 0 credits on %s; the client goes on with one call at a time.", f.place())
		case "echo":
			return head("Credits") + fmt.Sprintf("the client asks for no more than %d credits on %s, and all were in use %s.", f.limit, f.place(), units.Times(f.calls))
		}
		return head("Credits") + fmt.Sprintf("the server grants %d on %s, and all were in use %s when a call came.", f.limit, f.place(), units.Times(f.calls))
	}
	return r.textOfHosts(f, head)
}

// textOfHosts says what lies with servers and clients, and with the capture.
func (r *Recorder) textOfHosts(f *finding, head func(string) string) string {
	switch f.code {
	case PathDelay:
		if f.what == unsteady {
			return head("The way") + fmt.Sprintf("acknowledgements take %s on %s, now more, now less: packets wait on the path, or in adapters made of software.", units.DurationText(f.typical), f.place())
		}
		s := head("Distance") + fmt.Sprintf("each round trip to the server takes %s", units.DurationText(f.typical))
		if f.limit > 0 {
			return s + fmt.Sprintf(" on %s; another connection needs %s.", f.place(), units.DurationText(f.limit))
		}
		return s + fmt.Sprintf(" on %s, as the transport's own acknowledgements show.", f.place())
	case ServerTime:
		return head("Server") + fmt.Sprintf("it takes long for %s, %s each on average%s.", f.what, units.DurationText(f.typical), disk(f.what))
	case ServerThreads:
		at := units.Plural(int(f.limit), "call") + " at a time"
		return head("Server") + fmt.Sprintf("it serves %s while others wait in line. More threads (nfsd) would help.", at)
	case Neighbour:
		return head("Neighbour") + fmt.Sprintf("calls of %s waited behind those of %s, which keep server %s busy.", strings.TrimPrefix(f.place(), "client "), f.who, f.what)
	case SessionSlots:
		s := head("Session slots") + fmt.Sprintf("the session has %s, and all were in use %s when a call came on %s.", units.Plural(int(f.limit), "slot"), units.Times(f.calls), f.place())
		if f.side == Client {
			s += " The client asked for no more when it created the session."
		}
		return s
	case ClientReadResponse:
		return head("Client") + fmt.Sprintf("its adapter answers RDMA Reads late on %s, %s each.", f.place(), units.DurationText(f.typical))
	case OneAtATime:
		return head("One call at a time") + fmt.Sprintf("%s, each sent after the reply to the one before, %s each. More in parallel would help.", units.Plural(f.calls, "call"), units.DurationText(f.typical))
	case Recall:
		if f.what == "elsewhere" {
			return head("Recall") + fmt.Sprintf("the server recalled %s of %s; no call in the capture waited for that.", units.Plural(f.events, "delegation"), f.who)
		}
		return head("Recall") + fmt.Sprintf("%s waited until %s had returned a delegation.", units.Plural(f.calls, "call"), f.who)
	case AskedToWait:
		return head("Asked to wait") + fmt.Sprintf("the server put off %s, most of them %s, and was asked again until it served them.", units.Plural(f.calls, "call"), f.what)
	case CaptureGaps:
		if f.certainty == Possible {
			return fmt.Sprintf("The capture may lack packets (possible): %d of %d seem to be missing, but the packet numbers of a connection contradict each other.",
				f.events, f.limit+int64(f.events))
		}
		return fmt.Sprintf("The capture lacks packets (%s): %d of %d that were received are not in it. Nothing may be concluded from what is not there.",
			f.certainty, f.events, f.limit+int64(f.events))
	}
	return string(f.code)
}

// disk adds what usually takes the time of an operation.
func disk(op string) string {
	if strings.Contains(op, "COMMIT") {
		return ", usually because of the disk"
	}
	return ""
}

// next is what to run next.
func (r *Recorder) next(f *finding) []string {
	file := r.opt.File
	if len(f.worst) > 0 {
		file = f.worst[0].at.file(file)
	}
	if file == "" {
		file = "FILE"
	}
	var list []string
	switch f.code {
	case LossRecovery, Congestion, PathStall, Pause, LinkFull, ReceiverNotReady, ReadDepth:
		list = append(list, "rpcrdma-dump report --view fabric "+quoted(file))
	case SessionSlots:
		list = append(list, "rpcrdma-dump sessions "+quoted(file))
	case CaptureGaps, ClientIdle:
		return []string{}
	}
	if len(f.worst) > 0 && f.worst[0].at.start != 0 {
		list = append(list, fmt.Sprintf("rpcrdma-dump show 0x%08x %s", f.worst[0].at.xid, quoted(file)))
	}
	return list
}

// quoted is a name for a shell.
func quoted(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c != '.' && c != '/' && c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// summary is the most important line.
func (r *Recorder) summary(rep *Report) string {
	switch {
	case r.count == 0:
		return "The capture has no RPC calls."
	case !rep.Healthy():
		return rep.Causes[0].Text
	case r.unsure:
		return "The capture shows packets twice, and it is not clear which are the copies: give the captures of the two points as separate files."
	case rep.Calls == 0:
		return "No call was answered in this capture."
	case len(r.p99) == 0:
		return "Nothing is slow: all calls set up a mount."
	}
	s := fmt.Sprintf("Nothing is slow: P99 is %s", units.DurationText(r.percentile99()))
	waited := slices.ContainsFunc(rep.Causes, func(c *Cause) bool { return c.Clock == Calls && c.Share > 0.5 })
	if p := r.percentile99(); p > 5_000_000 || r.hanging > 10*p || waited {
		s = fmt.Sprintf("No likely cause found. P99 is %s", units.DurationText(p))
	}
	lost := ", nothing was lost"
	for k := range r.sum {
		if k.code == LossRecovery {
			lost = ", losses cost next to nothing"
		}
	}
	if r.events {
		lost = ", as a kernel recorded it, which tells nothing of losses or of the way to the other side"
	}
	switch {
	case r.unanswered == 0 && (r.events || waited):
		s += lost + "."
	case r.unanswered == 0:
		s += lost + ", and no call waited."
	case r.hanging == 0:
		s += lost + fmt.Sprintf("; no reply to %s.", units.Plural(r.unanswered, "call"))
	default:
		s += lost + fmt.Sprintf("; no reply to %s, the oldest sent %s before the last packet.", units.Plural(r.unanswered, "call"), units.DurationText(r.hanging))
	}
	if len(rep.Causes) > 0 && rep.Causes[0].Code == ClientIdle {
		s += " The mount is mostly idle."
	}
	return s
}

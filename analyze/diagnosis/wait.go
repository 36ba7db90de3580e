package diagnosis

// askedToWait finds calls that the server did not serve at once, and asked to come again.
func (b *batch) askedToWait() {
	byServer := make(map[uint16]*finding)
	var servers []uint16
	for _, x := range b.forward {
		if x.asked1 == 0 || x.again || x.end == 0 {
			continue
		}
		f := byServer[x.server]
		if f == nil {
			f = &finding{code: AskedToWait, side: Server, where: "server " + b.names.name(x.server), clock: Calls, certainty: Certain, what: b.names.name(x.op)}
			byServer[x.server], servers = f, append(servers, x.server)
		}
		if x.kind == opening {
			f.certainty = Likely // the server may itself have waited for a delegation that somebody else holds
		}
		f.of(x, x.take(x.start-x.asked1))
	}
	for _, s := range servers {
		b.Recorder.found(byServer[s])
	}
}

// recall finds calls that waited until the holder of a delegation had given it back.
func (b *batch) recall() {
	if b.recalls == 0 {
		return
	}
	waited, elsewhere := make(map[uint16]*finding), make(map[uint16]*finding)
	var holders []uint16
	for i := range b.calls {
		c := &b.calls[i]
		if c.kind != recalling {
			continue
		}
		back := b.returned(c)
		if back == nil {
			continue
		}
		h := c.server
		if waited[h] == nil {
			holders = append(holders, h)
			who := b.names.name(h)
			waited[h] = &finding{code: Recall, side: Client, where: "client " + who, who: who, clock: Calls, certainty: Likely}
			elsewhere[h] = &finding{code: Recall, side: Client, where: "client " + who, who: who, clock: Wall, certainty: Possible, what: "elsewhere"}
		}
		f, found := waited[h], false
		for _, x := range b.forward {
			if x.kind != opening || x.end == 0 || x.again || x.begin() >= back.end || x.end < back.callEnd || x.start-back.end > askedSoon {
				continue
			}
			// It was there while the delegation was held, and was answered when it was no longer.
			n := x.take(x.start - x.begin() + max(min(x.answer, back.end)-max(x.start, c.start), 0))
			f.of(x, n)
			found = found || n > 0
		}
		if !found {
			e := elsewhere[h]
			e.time += back.end - c.start
			e.events++
			e.show(c, back.end-c.start)
		}
	}
	for _, h := range holders {
		if f := waited[h]; f.time > 0 {
			b.Recorder.found(f)
		} else {
			b.Recorder.found(elsewhere[h])
		}
	}
}

// askedSoon is how long after the return of a delegation a client that was asked to wait asks again, in nanoseconds.
const askedSoon = 16_000_000_000

// returned is the call that gave back what c recalled.
func (b *batch) returned(c *call) *call {
	for _, x := range b.forward {
		if x.kind == returning && x.client == c.server && x.end > c.start && x.start > c.start {
			return x
		}
	}
	return nil
}

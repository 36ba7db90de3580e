package rdma

import "testing"

func TestSetupCut(t *testing.T) {
	req := Setup{Message: SetupREQ, ServiceID: 0x4e51, PathMTU: 4096, PrivateBytesLen: PrivateDataSize}
	rep := Setup{Message: SetupREP, PrivateBytesLen: PrivateDataSize}
	with := func(s Setup, change func(s *Setup)) Setup {
		change(&s)
		return s
	}
	for _, x := range []struct {
		name            string
		fabric          Fabric
		a, b            Setup
		terms, declared bool // declared: by the first side
	}{
		{"whole", RoCEv2, req, rep, true, true},
		{"the other way round", RoCEv2, rep, req, true, true},
		{"no request", RoCEv2, Setup{}, rep, false, false},
		{"no answer", RoCEv2, req, Setup{}, false, true},
		{"the request is cut", RoCEv2, with(req, func(s *Setup) { s.Cut, s.PrivateBytesLen = true, 0 }), rep, false, false},
		{"the answer is cut", RoCEv2, req, with(rep, func(s *Setup) { s.Cut, s.PrivateBytesLen = true, 0 }), false, true},
		{"its private data is", RoCEv2, with(req, func(s *Setup) { s.PrivateBytesLen-- }), rep, true, false},
		{"it is, and shows what matters", RoCEv2, with(req, func(s *Setup) { s.PrivateBytesLen, s.Private.Present = 0, true }), rep, true, true},
		{"no private data over iWARP", IWARP, Setup{Message: SetupMPA}, Setup{Message: SetupMPA}, true, true},
	} {
		c := Connection{Fabric: x.fabric, Setup: [2]Setup{x.a, x.b}}
		if c.Terms() != x.terms || c.Declared(0) != x.declared {
			t.Errorf("%s: terms %v, declared %v", x.name, c.Terms(), c.Declared(0))
		}
	}
}

func TestSetupDepths(t *testing.T) {
	for _, x := range []struct {
		s    Setup
		want bool
	}{
		{Setup{}, false},
		{Setup{Message: SetupREQ}, true},
		{Setup{Message: SetupREQ, Cut: true}, false},
		{Setup{Message: SetupMPA, MPARevision: 1}, false},
		{Setup{Message: SetupMPA, MPARevision: 2}, true},
		{Setup{Message: SetupMPA, MPARevision: 1, InitiatorDepth: 4}, true},
	} {
		if x.s.Depths() != x.want {
			t.Errorf("%+v: %v", x.s, !x.want)
		}
	}
}

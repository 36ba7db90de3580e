package roce

// flowTable finds the flow of a packet.
type flowTable struct {
	byKey map[flowKey]*flow
	cache [flowSlots]*flow // of those with the same slot: the last one used
}

// flowSlots is the length of flowTable.cache.
const flowSlots = 1 << 10

// flowSlot is the place in flowTable.cache of a flow between two hosts.
func flowSlot(hash, qpn uint32) uint32 {
	return (hash ^ qpn*(golden>>32)) >> (32 - 10)
}

// slot is the cache entry of a flow.
func (x *flowTable) slot(key *flowKey) **flow {
	return &x.cache[flowSlot(routeHash(key.src, key.dst), key.qpn)]
}

// find returns a flow, nil if there is none.
func (x *flowTable) find(key *flowKey) *flow {
	slot := x.slot(key)
	fl := *slot
	if fl == nil || fl.key != *key {
		if fl = x.byKey[*key]; fl != nil {
			*slot = fl
		}
	}
	return fl
}

// cached is the flow that a packet on the fast path most likely belongs to.
func (x *flowTable) cached(l *FastPacket) *flow { return x.cache[flowSlot(l.Route.hash, l.DestQP)] }

// fast finds the flow of a packet if the cache has another one, or if the packet comes with another Route of the same hosts: each
// FastDecoder has its own. It returns nil if there is none.
func (x *flowTable) fast(l *FastPacket, tenant uint64) *flow {
	fl := x.byKey[flowKey{l.Route.Src, l.Route.Dst, tenant, l.DestQP}]
	if fl != nil {
		fl.route = l.Route
		x.cache[flowSlot(l.Route.hash, l.DestQP)] = fl
	}
	return fl
}

func (x *flowTable) add(fl *flow) { x.byKey[fl.key], *x.slot(&fl.key) = fl, fl }

func (x *flowTable) drop(fl *flow) {
	if x.byKey[fl.key] == fl {
		delete(x.byKey, fl.key)
	}
	if slot := x.slot(&fl.key); *slot == fl {
		*slot = nil
	}
}

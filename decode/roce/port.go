package roce

// Port is the UDP destination port of RoCEv2 (IBTA annex A17).
const Port = 4791

package link

// Problem says why a frame that looked interesting could not be decoded.
type Problem uint8

// Problems of frames; see Problem.String for each. "Cut" ones are the capture's: it
// holds too little of the header. All others are the sender's.
const (
	NoProblem Problem = iota
	ProblemCutEthernet
	ProblemCutVLAN
	ProblemManyVLAN
	ProblemCutPBB
	ProblemCutCMD
	ProblemCutMACsec
	ProblemShortMACsec
	ProblemMACsecVersion
	ProblemCutPPP
	ProblemCutPPPoE
	ProblemNotPPPoE
	ProblemCutHDLC
	ProblemCutSLL
	ProblemCutSLL2
	ProblemCutLoopback
	ProblemCutERF
	ProblemCutERFExtension
	ProblemManyERFExtensions
	ProblemCutNFLOG
	ProblemNFLOGAttribute
	ProblemNFLOGPacket
	ProblemCutPPI
	ProblemNotPPI
	ProblemCutMPLS
	ProblemCutMPLSPayload
	ProblemManyMPLS
	ProblemCutNSH
	ProblemNSHLength
	ProblemNSHVersion
	ProblemCutIP
	ProblemNotIP
	ProblemCutIPv4
	ProblemNotIPv4
	ProblemIPv4HeaderLength
	ProblemIPv4TotalLength
	ProblemCutIPv4Options
	ProblemCutIPv6
	ProblemNotIPv6
	ProblemCutIPv6Extension
	ProblemIPv6Extension
	ProblemManyIPv6Extensions
	ProblemNestedFragment
	ProblemCutUDP
	ProblemShortUDP
	ProblemCutTCP
	ProblemShortTCP
	ProblemTCPOffset
	ProblemCutGRE
	ProblemShortGRE
	ProblemGRERouting
	ProblemGREVersion
	ProblemCutERSPAN
	ProblemCutERSPANSub
	ProblemERSPANVersion
	ProblemCutGENEVE
	ProblemManyTunnels
	ProblemCutLRH
	ProblemLRHLength
	ProblemCutGRH
	ProblemShortGRH
	ProblemGRHVersion
	ProblemGRHNext
	ProblemCutIPoIB
	ProblemCutPortTag
	ProblemCutTRILL
	ProblemTRILLVersion
	ProblemCutFabricPath
	ProblemCutEtherIP
	ProblemEtherIPVersion

	endOfProblems
)

var problemTexts = [endOfProblems]string{
	ProblemCutEthernet:        "Ethernet header cut",
	ProblemCutVLAN:            "VLAN tag cut",
	ProblemManyVLAN:           "too many VLAN tags",
	ProblemCutPBB:             "802.1ah tag cut",
	ProblemCutCMD:             "Cisco metadata cut",
	ProblemCutMACsec:          "MACsec tag cut",
	ProblemShortMACsec:        "frame shorter than MACsec's headers",
	ProblemMACsecVersion:      "unknown version of MACsec",
	ProblemCutPPP:             "PPP header cut",
	ProblemCutPPPoE:           "PPPoE header cut",
	ProblemNotPPPoE:           "not a PPPoE session packet",
	ProblemCutHDLC:            "HDLC header cut",
	ProblemCutSLL:             "SLL header cut",
	ProblemCutSLL2:            "SLL2 header cut",
	ProblemCutLoopback:        "loopback header cut",
	ProblemCutERF:             "ERF header cut",
	ProblemCutERFExtension:    "ERF extension header cut",
	ProblemManyERFExtensions:  "too many ERF extension headers",
	ProblemCutNFLOG:           "NFLOG header cut",
	ProblemNFLOGAttribute:     "NFLOG attribute shorter than its header",
	ProblemNFLOGPacket:        "NFLOG message without a packet, or cut before it",
	ProblemCutPPI:             "PPI header cut",
	ProblemNotPPI:             "not a PPI header",
	ProblemCutMPLS:            "MPLS label cut",
	ProblemCutMPLSPayload:     "cut behind the MPLS labels",
	ProblemManyMPLS:           "too many MPLS labels",
	ProblemCutNSH:             "NSH cut",
	ProblemNSHLength:          "bad length of NSH",
	ProblemNSHVersion:         "unknown version of NSH",
	ProblemCutIP:              "IP header cut",
	ProblemNotIP:              "not an IP packet",
	ProblemCutIPv4:            "IPv4 header cut",
	ProblemNotIPv4:            "not an IPv4 packet",
	ProblemIPv4HeaderLength:   "IPv4 header length below 20",
	ProblemIPv4TotalLength:    "IPv4 total length below header length",
	ProblemCutIPv4Options:     "IPv4 options cut",
	ProblemCutIPv6:            "IPv6 header cut",
	ProblemNotIPv6:            "not an IPv6 packet",
	ProblemCutIPv6Extension:   "IPv6 extension header cut",
	ProblemIPv6Extension:      "IPv6 extension header beyond the payload",
	ProblemManyIPv6Extensions: "too many IPv6 extension headers",
	ProblemNestedFragment:     "fragment within a fragment",
	ProblemCutUDP:             "UDP header cut",
	ProblemShortUDP:           "IP payload shorter than a UDP header",
	ProblemCutTCP:             "TCP header cut",
	ProblemShortTCP:           "IP payload shorter than a TCP header",
	ProblemTCPOffset:          "bad TCP data offset",
	ProblemCutGRE:             "GRE header cut",
	ProblemShortGRE:           "IP payload shorter than a GRE header",
	ProblemGRERouting:         "GRE with source routing",
	ProblemGREVersion:         "unknown version of GRE",
	ProblemCutERSPAN:          "ERSPAN header cut",
	ProblemCutERSPANSub:       "ERSPAN sub-header cut",
	ProblemERSPANVersion:      "unknown version of ERSPAN",
	ProblemCutGENEVE:          "GENEVE options cut",
	ProblemManyTunnels:        "too many wrappings",
	ProblemCutLRH:             "LRH cut",
	ProblemLRHLength:          "LRH packet length below 8",
	ProblemCutGRH:             "GRH cut",
	ProblemShortGRH:           "packet shorter than a GRH",
	ProblemGRHVersion:         "GRH version is not 6",
	ProblemGRHNext:            "next header of the GRH is not a BTH",
	ProblemCutIPoIB:           "IPoIB header cut",
	ProblemCutPortTag:         "tag before the EtherType cut",
	ProblemCutTRILL:           "TRILL header cut",
	ProblemTRILLVersion:       "unknown version of TRILL",
	ProblemCutFabricPath:      "FabricPath tag cut",
	ProblemCutEtherIP:         "EtherIP header cut",
	ProblemEtherIPVersion:     "unknown version of EtherIP",
}

// String is the problem in plain English; empty for NoProblem.
func (p Problem) String() string {
	if p < endOfProblems {
		return problemTexts[p]
	}
	return ""
}

#ifndef PMI_WIRE_CHALLENGE_H_
#define PMI_WIRE_CHALLENGE_H_

#include <string>

namespace weft::pmi {

// PMI-2's authtype=challenge-sha256: the launcher sends a random number in decimal, and the rank answers with SHA-256 of the shared
// secret and that number in a row, in hexadecimal digits (the draft does not say which; nobody else has it).
inline constexpr char kChallengeMethod[] = "challenge-sha256";

std::string NewChallenge();
std::string ProofFor(const std::string& secret, const std::string& challenge);
// In constant time.
bool ProvesSecret(const std::string& proof, const std::string& secret, const std::string& challenge);

}  // namespace weft::pmi

#endif  // PMI_WIRE_CHALLENGE_H_

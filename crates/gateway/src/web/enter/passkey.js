const form = document.querySelector("form[data-passkey]");
const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
  .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

async function ask() {
  const { passkey, host, user, known } = form.dataset;
  const challenge = bytes(form.elements.challenge.value);
  const keys = known.split(" ").filter(Boolean).map((id) => ({ type: "public-key", id: bytes(id) }));
  if (passkey === "use") {
    const publicKey = { challenge, rpId: host, allowCredentials: keys, userVerification: "required" };
    return navigator.credentials.get({ publicKey });
  }
  const publicKey = {
    challenge, rp: { id: host, name: "Nacre" },
    user: { id: new TextEncoder().encode("owner"), name: user, displayName: user },
    pubKeyCredParams: [-7, -8, -257].map((alg) => ({ type: "public-key", alg })),
    authenticatorSelection: { residentKey: "preferred", userVerification: "required" },
    attestation: "none", excludeCredentials: keys,
  };
  return navigator.credentials.create({ publicKey });
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const note = document.querySelector("[data-passkey-note]");
  note.hidden = true;
  try {
    const { rawId, response } = await ask();
    const fields = form.elements;
    fields.id.value = text(rawId);
    fields.client_data.value = text(response.clientDataJSON);
    fields.authenticator_data.value = text(response.authenticatorData ?? response.getAuthenticatorData());
    if (response.signature) fields.signature.value = text(response.signature);
    form.submit();
  } catch (error) {
    note.textContent = `It did not work: ${error.message}`;
    note.hidden = false;
  }
});

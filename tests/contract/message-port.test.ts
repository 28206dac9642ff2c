import { MessageChannel, type MessagePort as NodePort } from "node:worker_threads";
import { connectMessagePort, messagePortPipe, type PortLike } from "../../src/transport/message-port.js";
import { transportContract } from "./transport.js";
import { hubOf, wiredWorld } from "./wired.js";
import type { TransportUnderTest } from "./world.js";

/** A world whose ends have a port each, which `face` shows as a runtime does. */
function ports(name: string, face: (port: NodePort) => PortLike): TransportUnderTest {
  return {
    name,
    open: async (limits) => {
      const hub = hubOf(limits);
      const channels: MessageChannel[] = [];
      return wiredWorld({
        hub,
        connect: (rank) => {
          const channel = new MessageChannel();
          channels.push(channel);
          hub.attach(messagePortPipe(face(channel.port1)));
          return connectMessagePort(face(channel.port2), { ...limits, rank });
        },
        close: async () => {
          await hub.close();
          for (const { port1, port2 } of channels) {
            port1.close();
            port2.close();
          }
        },
      });
    },
  };
}

/** Shows what a browser's port has, and nothing of Node's. */
function domFace(port: NodePort): PortLike {
  const dom = port as unknown as MessagePort;
  return {
    postMessage: (message, transfer) => dom.postMessage(message, transfer),
    start: () => dom.start(),
    close: () => dom.close(),
    addEventListener: (event, listener) => dom.addEventListener(event, listener),
  };
}

transportContract(ports("MessagePort, as in Node", (port) => port));
transportContract(ports("MessagePort, as in a browser", domFace));
